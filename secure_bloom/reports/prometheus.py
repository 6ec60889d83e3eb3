"""Numbers of a run as a text that Prometheus' node exporter collects.

    metrics_text("audit", {"files": (3, "Files that were checked.")})

gives ``secure_bloom_audit_files 3``. Format: Prometheus text exposition format 0.0.4.
"""

from __future__ import annotations

from collections.abc import Mapping


def metrics_text(verb: str, numbers: Mapping[str, tuple[float, str]]) -> str:
    """Return the text of gauges, by name, each with its number and its help."""
    lines: list[str] = []
    for name, (number, meaning) in numbers.items():
        full = f"secure_bloom_{verb}_{name.partition('{')[0]}"
        if not any(line.startswith(f"# TYPE {full} ") for line in lines):
            lines += [f"# HELP {full} {meaning}", f"# TYPE {full} gauge"]
        lines.append(f"secure_bloom_{verb}_{name} {number:.15g}")
    return "\n".join(lines) + "\n"
