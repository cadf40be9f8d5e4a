import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from recollect.errors import InputError
from recollect.files.limits import SET_BYTES
from recollect.images.image_files import check_set, in_parallel, quiet, read_files, refuse

Values = Callable[..., np.ndarray]


def written(folder: Path, pictures: dict[str, np.ndarray]) -> list[Path]:
    for name, values in pictures.items():
        Image.fromarray(values).save(folder / name)
    return [folder / name for name in pictures]


def test_files_become_one_array_and_grey_ones_among_colour_get_three_channels(tmp_path: Path, values: Values) -> None:
    colour, grey = values(4, 6, 3), values(4, 6)
    array = read_files(written(tmp_path, {"a.png": colour, "b.png": grey}), ["a", "b"])
    assert np.array_equal(array[0], colour.transpose(2, 0, 1))
    assert np.array_equal(array[1], np.stack([grey] * 3))


def test_each_file_is_converted_before_sizes_are_compared(tmp_path: Path, values: Values) -> None:
    paths = written(tmp_path, {"a.png": values(4, 6, 3), "b.png": values(8, 4, 3)})
    assert read_files(paths, ["a", "b"], convert=lambda image: image[:, :2, :2]).shape == (2, 3, 2, 2)
    with pytest.raises(InputError, match=r"differ in size: 6x4 \(1 file, such as a\), 4x8 .* Try 4\.$"):
        read_files(paths, ["a", "b"], size_advice="Try {smallest}.")


def test_tasks_are_all_run_failures_gathered_and_progress_reported() -> None:
    done: list[int] = []
    reported: list[tuple[int, int]] = []

    def task(number: int) -> None:
        done.append(number)
        if number % 50 == 7:
            raise InputError(f"no {number}")

    failures = in_parallel(task, 200, lambda some, total: reported.append((some, total)))
    assert sorted(done) == list(range(200))
    assert [(number, str(error)) for number, error in failures] == [(n, f"no {n}") for n in (7, 57, 107, 157)]
    assert reported == sorted(reported)
    assert reported[-1] == (200, 200)


def test_tasks_run_on_other_threads() -> None:
    names = set()
    in_parallel(lambda number: names.add(threading.current_thread().name), 10, lambda done, total: None)
    assert threading.main_thread().name not in names


def test_refusing_names_three_and_counts_the_rest() -> None:
    refuse([], 9, "Repair them.")
    with pytest.raises(InputError, match=r"^5 of 9 files cannot be used. f0. f1. f2. \(and 2 more\) Repair them.$"):
        refuse([(i, InputError(f"f{i}.")) for i in range(5)], 9, "Repair them.")


def test_a_set_beyond_the_limit_is_refused_by_its_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SET_BYTES.variable, "1000")
    check_set((10, 1, 10, 10), "a")
    with pytest.raises(InputError, match="a holds 11x1x10x10 values, 1,100 bytes"):
        check_set((11, 1, 10, 10), "a")


def test_progress_need_not_be_reported() -> None:
    quiet(1, 2)
