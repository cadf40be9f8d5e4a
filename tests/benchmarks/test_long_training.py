from tests.benchmarks.running import ended

SMALL = ("--images", "photos?count=4&size=8", "--width", "24", "--layers", "3", "--steps", "60", "20")


def test_it_shows_how_a_decay_keeps_the_weights_down() -> None:
    norms = []
    for decay in ("0", "5"):
        done = ended("long_training", *SMALL, "--decay", decay)
        assert done.code == 0, done.err
        head, *rows = done.out.splitlines()
        assert [row.split("|")[1].strip() for row in rows] == ["20", "60"]
        assert head.count("|") == rows[0].count("|")
        assert all(0 <= int(count) <= 4 for row in rows for count in row.split("|")[4:-1])
        norms.append(float(rows[-1].split("|")[3].split()[-1]))
    assert norms[1] < norms[0]
