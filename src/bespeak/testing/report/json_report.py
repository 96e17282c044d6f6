"""The JSON report: the same for two runs with the same outcome."""

import json

from bespeak.testing.report.document import Document
from bespeak.testing.report.plain_json import plain
from bespeak.testing.report.summary import Summary, in_order

VERSION = 1
"""The version of the JSON report."""


class JsonReport(Document):
    """The report as JSON. It has no times, and the order does not depend on which test ended first."""

    def _text(self, summary: Summary) -> str:
        counts = {
            "passed": summary.passed,
            "failed": summary.failed,
            "skipped": summary.skipped,
            "xfailed": summary.xfailed,
            "deselected": summary.deselected,
            "interrupted": summary.interrupted,
        }
        results = [plain(result.as_json()) for result in in_order(summary.results)]
        told = {"version": VERSION, "summary": counts, "notes": plain(summary.all_notes), "results": results}
        return json.dumps(told, indent=2, sort_keys=True, allow_nan=False) + "\n"
