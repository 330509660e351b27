"""What goes on which page: titles go on, code is cut between statements, sizes are the largest that fit."""

from __future__ import annotations

from course.build.paging import (
    SIZES,
    TALL,
    Code,
    Figure,
    Heading,
    Page,
    Prose,
    Unit,
    fitting,
    pages,
)


def code(*lines: str, printed: bool = False) -> Code:
    return Code("\n".join(lines), tuple(lines), printed=printed)


TITLE = Heading("A title", 2)


def test_little_code_is_large_and_more_is_smaller() -> None:
    sizes = [pages(TITLE, [Unit([code(*["x = 1"] * count)])])[0].size for count in (3, 16, 17)]
    assert sizes[0] == SIZES[0]
    assert sizes == sorted(sizes, reverse=True)
    wide = pages(TITLE, [Unit([code("x" * 75)])])[0]
    assert wide.size < SIZES[0]  # a line is not broken to be larger


def test_long_code_goes_on_at_a_statement_and_keeps_the_title() -> None:
    lines = [line for n in range(12) for line in (f"def f{n}():", f"    return {n}", "")]
    found = pages(TITLE, [Unit([code(*lines)])])
    assert len(found) > 1
    assert all(page.title is TITLE for page in found)
    shown = [part.lines for page in found for part in page.parts if isinstance(part, Code)]
    assert all(piece[0].startswith("def ") and piece[-1].strip() for piece in shown)
    assert [line for piece in shown for line in piece if line] == [line for line in lines if line]
    assert all(page.taken(page.size) <= TALL for page in found)


def test_what_was_printed_stays_with_the_last_lines() -> None:
    body = ["def f():", *["    x = 1"] * 13, "", "for n in range(3):", "    print(n)"]
    found = pages(TITLE, [Unit([code(*body), code("0", "1", "2", printed=True)])])
    last = [part.lines for part in found[-1].parts if isinstance(part, Code)]
    assert last == [("for n in range(3):", "    print(n)"), ("0", "1", "2")]


def test_a_picture_takes_what_is_left_and_moves_where_it_could_not_be_read() -> None:
    picture = Figure("", ((400.0, 300.0, "<TALL>"),), letters=11.5)
    alone = pages(TITLE, [Unit([picture])])[0]
    below = pages(TITLE, [Unit([code("x = 1")]), Unit([picture])])
    assert len(below) == 1
    assert below[0].share(picture) < alone.share(picture)
    assert below[0].taken(below[0].size) <= TALL
    crowded = pages(TITLE, [Unit([code(*["x = 1"] * 12)]), Unit([picture])])
    assert len(crowded) == 2


def test_a_tall_picture_stands_beside_prose() -> None:
    picture = Figure("", ((400.0, 420.0, "<TALL>"),), letters=11.5)
    (page,) = pages(TITLE, [Unit([Prose("<p>", source="words " * 40)]), Unit([picture])])
    assert page.beside


def test_a_prompt_ends_where_the_page_does() -> None:
    blocks = [Prose(f"<p>{n}</p>", source="word " * 60) for n in range(9)]
    last = Prose("<p>more</p>", source="more")
    kept = fitting(TITLE, blocks, last)
    assert kept[-1] is last
    assert 2 < len(kept) < 9
    assert Page(TITLE, [Unit(kept)]).taken(SIZES[-1]) <= TALL
    assert fitting(TITLE, blocks[:2], last) == blocks[:2]


def test_a_prompt_does_not_end_with_what_announces_something_left_out() -> None:
    blocks = [Prose("<p>", source="word " * 60), Prose("<p>", source="All of these:"),
              *(Prose("<p>", source="word " * 400) for _ in range(3))]  # fmt: skip
    assert fitting(TITLE, blocks, blocks[0]) == [blocks[0], blocks[0]]
