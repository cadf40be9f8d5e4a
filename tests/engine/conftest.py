from tests.accelerate.conftest import calls as calls
