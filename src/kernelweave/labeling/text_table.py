r"""A CSV or TSV file, kept as the bytes it is.

What is read is where cells end, one matrix ``ends`` of shape (1 + n_rows, n_columns), header first. A cell ends at a
delimiter, at ``\n``, ``\r\n`` or ``\r``, or with the file, unless that byte lies within quotes; the copy is spliced at
these places. The rules:

1. A quoted cell begins with a quote right after a delimiter or line end; a doubled quote in it is a quote. A quote
   anywhere else is an ordinary character (``5" pipe``), as for Python's ``csv``.
2. A blank line is not a row and stays where it is. In a table of one column a blank line *between* rows is a row
   whose cell is empty; those after the last row are not.
3. A first line ``sep=;``, which Excel reads and writes, names the delimiter; it is no row, and stays where it is.
4. Bytes are UTF-8, UTF-16 with a byte-order mark, or else Windows-1252 (Latin-1 where that has no such character).
   Each of these decodings can be undone exactly. UTF-16 is held as UTF-8, so that delimiters are single bytes.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import ErrorCode, KernelweaveError
from ..files import Writer
from .archives import pack_writer
from .base import Extra, Table, Texts, Values, check_header, ending, require_package

DELIMITERS = ",;\t|"
SAMPLE_BYTES = 1 << 20  # from which the delimiter is guessed
MAX_PIECES = 100_000  # of bytes that are joined before they are written
SEPARATOR_LINE = re.compile(rb'"?sep=(?P<delimiter>[,;\t|:^~#*!&/ ])"?(?:\r\n|\r|\n)', re.IGNORECASE)
LF, CR = b"\n\r"
BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
SIGNATURES = {
    b"PK\x03\x04": "a broken zip archive or workbook",
    b"\x1f\x8b": "an archive within an archive",
    b"PAR1": "a broken Parquet file",
    b"\xd0\xcf\x11\xe0": "an Excel workbook of the old kind (.xls); save it as .xlsx or CSV",
    b"%PDF": "a PDF document",
    b"SQLite format 3": "a SQLite database",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive; unpack it first",
    b"BZh": "a bzip2 archive; unpack it first",
    b"\xfd7zXZ": "an xz archive; unpack it first",
}
Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class TextTable(Table):
    """A CSV or TSV file as its own bytes and the places where its cells end."""

    format = "csv"
    delimiter: str
    line_end: str  # the header's; others may occur, and are kept
    mark: bytes  # byte-order mark
    body: bytes  # what follows it, UTF-16 as UTF-8
    codec: str  # of `body`
    encoding: str  # of the file: "utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "cp1252" or "latin-1"
    starts: Positions  # of the header and each row, in `body`
    ends: Positions  # of their cells; the next cell of the row begins one byte later
    is_packed: bool = False  # whether the file is a gzip archive, as the copy is then
    remarks: tuple[str, ...] = ()

    @classmethod
    def parse(cls, path: Path, raw: bytes, delimiter: str | None = None) -> TextTable:
        mark, body, codec, encoding = _decode(path, raw)
        if not body.strip():
            raise KernelweaveError(f"'{path}' is empty.", ErrorCode.EMPTY)
        named = SEPARATOR_LINE.match(body) if delimiter is None else None
        if named is not None:
            delimiter = named["delimiter"].decode()
        elif delimiter is None:
            delimiter = "\t" if ending(path) in (".tsv", ".tab") else _guess_delimiter(body)
        lines = _scan(body, delimiter)
        if lines.open_quote is not None:
            line = _line_number(body, lines.open_quote)
            raise KernelweaveError(
                f"The quote that opens in line {line} of '{path}' is never closed.", ErrorCode.NOT_A_TABLE
            )
        rows = (lines.starts < lines.ends) & (lines.starts >= (named.end() if named else 0))  # all but blank lines
        if not rows.any():
            raise KernelweaveError(f"'{path}' is empty.", ErrorCode.EMPTY)
        header, last = np.flatnonzero(rows)[[0, -1]]
        n_columns = int(lines.n_cells[header])
        if n_columns == 1:
            rows[header:last] = True
        if len(ragged := np.flatnonzero(rows & (lines.n_cells != n_columns))):
            line, n_cells = _line_number(body, lines.starts[ragged[0]]), int(lines.n_cells[ragged[0]])
            message = (
                f"Line {line} of '{path}' has {n_cells} cell{'s' * (n_cells > 1)}, but the header has {n_columns}."
            )
            raise KernelweaveError(message, ErrorCode.RAGGED)
        starts = lines.starts[rows]
        ends = (lines.stops if rows.all() else lines.stops[np.repeat(rows, lines.n_cells)]).reshape(-1, n_columns)
        names = list(_read_texts(body, codec, np.append(starts[0], ends[0, :-1] + 1), ends[0]))
        check_header(path, names, len(starts) - 1)
        line_end = next(end for end in ("\r\n", "\r", "\n") if body.startswith(end.encode(), ends[0, -1]))
        return cls(path, names, len(starts) - 1, delimiter, line_end, mark, body, codec, encoding, starts, ends)

    @property
    def notes(self) -> tuple[str, ...]:
        return self.remarks

    def column(self, name: str) -> Texts:
        starts, ends = self._spans(name)
        return _read_texts(self.body, self.codec, starts[1:], ends[1:])

    def frame(self, names: Sequence[str] | None = None) -> Any:
        columns = {name: self.column(name) for name in (self.names if names is None else names)}
        return require_package("pandas").DataFrame(columns, dtype=object, copy=False)

    def prepare_copy(self, target: str, values: Values, extra: Extra) -> Writer:
        starts, ends = self._spans(target)
        encoded = functools.lru_cache(1 << 16)(self._encode_cell)
        cells = zip([None, *values], _is_quoted(self.body, starts, ends).tolist(), strict=True)
        inserts = [b"" if text is None else encoded(target, text, quoted) for text, quoted in cells]
        # A cell that stays is cut out nowhere, and nothing is put there.
        cut_ends = np.where([True, *(value is None for value in values)], starts, ends)
        columns = [[encoded(name, text) for text in (name, *texts)] for name, texts in extra.items()]
        comma = self.delimiter.encode()
        tails = [comma + comma.join(cells) for cells in zip(*columns, strict=True)] or [b""] * (self.n_rows + 1)
        places = zip(starts.tolist(), cut_ends.tolist(), self.ends[:, -1].tolist(), inserts, tails, strict=True)

        def write(file: Any) -> None:
            file.write(self.mark)
            cursor = 0
            pieces: list[bytes] = []
            for cut, cut_end, row_end, insert, tail in places:
                pieces += (self.body[cursor:cut], insert, self.body[cut_end:row_end], tail)
                cursor = row_end
                if len(pieces) > MAX_PIECES:
                    file.write(self._encode_pieces(pieces))
                    pieces = []
            file.write(self._encode_pieces([*pieces, self.body[cursor:]]))

        return pack_writer(write) if self.is_packed else write

    def _spans(self, name: str) -> tuple[Positions, Positions]:
        j = self.position(name)
        return (self.ends[:, j - 1] + 1 if j else self.starts), self.ends[:, j]

    def _encode_cell(self, name: str, text: str, quoted: bool = False) -> bytes:
        if quoted or any(special in text for special in (self.delimiter, '"', "\n", "\r")):
            text = '"' + text.replace('"', '""') + '"'
        try:
            return text.encode(self.codec)
        except UnicodeEncodeError as error:
            wrong = f"{text[error.start]!r} in column '{name}' cannot be written in {self.encoding}"
            message = f"{wrong}, the encoding of '{self.path}'."
            raise KernelweaveError(message, ErrorCode.UNENCODABLE) from None

    def _encode_pieces(self, pieces: list[bytes]) -> bytes:
        joined = b"".join(pieces)
        return joined.decode().encode(self.encoding) if self.encoding.startswith("utf-16") else joined


def _decode(path: Path, raw: bytes) -> tuple[bytes, bytes, str, str]:
    for signature, what in SIGNATURES.items():
        if raw.startswith(signature) and b"\0" in raw:
            raise KernelweaveError(f"'{path}' is not a table but {what}.", ErrorCode.NOT_A_TABLE)
    marked = [mark for mark in BYTE_ORDER_MARKS if raw.startswith(mark)]
    mark, candidates = (marked[0], [BYTE_ORDER_MARKS[marked[0]]]) if marked else (b"", ["utf-8", "cp1252", "latin-1"])
    for encoding in candidates:
        with contextlib.suppress(UnicodeDecodeError):
            text = raw[len(mark) :].decode(encoding)
            break
    else:
        raise KernelweaveError(
            f"'{path}' has the byte-order mark of {encoding} but is not {encoding}.", ErrorCode.UNDECODABLE
        )
    codec = encoding if encoding in ("cp1252", "latin-1") else "utf-8"
    body = text.encode() if encoding.startswith("utf-16") else raw[len(mark) :]
    head = body[:SAMPLE_BYTES]
    # Random bytes hold 11 % of these; a text at most a stray form feed, escape or Ctrl-Z.
    n_control = len(head) - len(head.translate(None, bytes({*range(32)} - set(b"\t\n\r"))))
    if b"\0" in body or n_control > 1 + 0.05 * len(head):
        raise KernelweaveError(f"'{path}' is not a table: it is neither text nor Parquet.", ErrorCode.NOT_A_TABLE)
    return mark, body, codec, encoding


class _Lines(NamedTuple):  # line ends within quotes do not count; a blank line has one cell
    stops: Positions  # where cells end, line by line
    n_cells: Positions
    starts: Positions
    ends: Positions
    open_quote: int | None  # where the quote is that is never closed


def _scan(body: bytes, delimiter: str) -> _Lines:
    data = np.frombuffer(body, np.uint8)
    is_stop = (data == ord(delimiter)) | (data == LF) | (data == CR)
    is_stop[1:] &= ~((data[1:] == LF) & (data[:-1] == CR))  # of the pair, the first is the stop
    inside, open_quote = _inside_quotes(body, delimiter) if b'"' in body else (False, None)
    stops = np.flatnonzero(is_stop & ~np.asarray(inside))
    last_cells = np.flatnonzero(data[stops] != ord(delimiter))
    ends = stops[last_cells]
    starts = np.append(0, ends + 1 + ((data[ends] == CR) & (data.take(ends + 1, mode="clip") == LF)))
    if starts[-1] < len(data):  # the last line has no line end
        last_cells, ends = np.append(last_cells, len(stops)), np.append(ends, len(data))
        stops = np.append(stops, len(data))
    return _Lines(stops, np.diff(last_cells, prepend=-1), starts[: len(ends)], ends, open_quote)


def _inside_quotes(body: bytes, delimiter: str) -> tuple[NDArray[np.bool_], int | None]:
    """Which bytes, quotes apart, lie within quotes; and where the quote is that is never closed."""
    data = np.frombuffer(body, np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    border = np.zeros(256, dtype=bool)
    border[[ord(delimiter), LF, CR, ord('"')]] = True
    # If quotes stand at the borders of cells or are doubled, and nowhere else, an odd number of them before a byte
    # says that it is inside. At the ends of the file "clip" finds the quote itself.
    neighbors = np.append(quotes[::2] - 1, quotes[1::2] + 1)
    if len(quotes) % 2 == 0 and border[data.take(neighbors, mode="clip")].all():
        return np.cumsum(data == ord('"'), dtype=np.uint8) % 2 == 1, None
    # The quote comes first in the pattern, and then the look back, so that the search jumps from quote to quote.
    pattern = re.compile(rb'"(?:(?<=\A")|(?<=[\r\n%s]"))(?:[^"]++|"")*+("?)' % delimiter.encode())
    spans = np.fromiter((at for match in pattern.finditer(body) for at in match.span()), np.int64)
    change = np.zeros(len(data) + 1, dtype=np.int8)
    change[spans[::2]], change[spans[1::2]] = 1, -1
    last = pattern.match(body, spans[-2]) if len(spans) else None
    return np.cumsum(change[:-1], dtype=np.int8) == 1, last.start() if last and not last[1] else None


def _guess_delimiter(body: bytes) -> str:
    def regularity(delimiter: str) -> tuple[float, int, int]:
        lines = _scan(body[:SAMPLE_BYTES], delimiter)
        n_cells = lines.n_cells[lines.starts < lines.ends]
        n_cells = (
            n_cells[:-1] if len(body) > SAMPLE_BYTES and len(n_cells) > 1 else n_cells
        )  # the last line is cut short
        # A quote after a mark that is no delimiter swallows line ends: among equals, more lines are right.
        return float(np.mean(n_cells == n_cells[0])) * (n_cells[0] > 1), int(n_cells[0]), len(n_cells)

    return max(DELIMITERS, key=regularity)


def _line_number(body: bytes, at: int) -> int:
    return 1 + sum(sign * body.count(end, 0, at) for end, sign in ((b"\n", 1), (b"\r", 1), (b"\r\n", -1)))


def _is_quoted(body: bytes, starts: Positions, ends: Positions) -> NDArray[np.bool_]:
    return (np.frombuffer(body, np.uint8).take(starts, mode="clip") == ord('"')) & (starts < ends)


def _read_texts(body: bytes, codec: str, starts: Positions, ends: Positions) -> Texts:
    quoted = _is_quoted(body, starts, ends)
    bare = quoted & _is_quoted(body, ends - 1, ends)  # nothing follows the closing quote: cut both off
    places = zip((starts + bare).tolist(), (ends - bare).tolist(), strict=True)
    texts = np.empty(len(starts), dtype=object)
    if codec == "utf-8" and not body.isascii():
        texts[:] = [body[start:end].decode() for start, end in places]
    else:  # a byte is a character
        whole = body.decode(codec)
        texts[:] = [whole[start:end] for start, end in places]
    for i in np.flatnonzero(quoted):
        if '"' in texts[i]:
            # What follows the closing quote up to the delimiter belongs to the cell, as for Python's csv.
            cell = f'"{texts[i]}"' if bare[i] else texts[i]
            inside, after = re.fullmatch(r'"((?:[^"]++|"")*+)"(.*)', cell, re.DOTALL).groups()  # type: ignore[union-attr]
            texts[i] = inside.replace('""', '"') + after
    return texts
