"""The files of a run: reports in the order of the tasks, whatever becomes of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import secure_bloom as sb
from secure_bloom.adding.run import FileTask
from secure_bloom.rekeying.rekey_files import rekey_files
from secure_bloom.rekeying.rekey_work import reencryption
from testing.tables import KEYRING


def test_reports_come_in_order_and_progress_counts_every_file(tmp_path: Path) -> None:
    tasks = []
    for number in range(4):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"id": [number]}), path)
        tasks.append(FileTask(path=str(path), target=str(tmp_path / "new" / path.name)))
    Path(tasks[2].path).write_text("no Parquet file")
    policy = sb.KeyPolicy(footer_key="k_footer", uniform=True)
    open_work = partial(reencryption, policy, KEYRING, only_changes=True)
    seen: list[tuple[int, int]] = []
    reports = rekey_files(
        open_work(), open_work, tasks, jobs=2, progress=lambda *now: seen.append(now)
    )
    assert [report.path for report in reports] == [task.path for task in tasks]
    assert [report.status for report in reports] == [*["reencrypted"] * 2, "failed", "reencrypted"]
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "0.parquet",
        "1.parquet",
        "3.parquet",
    }
