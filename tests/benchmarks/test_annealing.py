from tests.benchmarks.running import run


def test_it_runs_and_shows_what_the_trainer_would_average_over() -> None:
    small = ["photos?count=3&size=8", "--widths", "4", "8", "--steps", "40", "--rows", "4", "--average", "2", "8"]
    head, *rows = run("annealing", *small).splitlines()
    assert head.split("  ")[-1].strip() == "the trainer's"
    assert [int(row.split()[0]) for row in rows] == [10, 20, 30, 40, 42]
    losses = [[float(value) for value in row.split()[2:]] for row in rows]
    assert losses[-1][0] < losses[0][0]
