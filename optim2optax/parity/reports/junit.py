"""The report as JUnit XML, which most services display."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from optim2optax.parity.reports.result import Report


def render_junit(report: Report) -> bytes:
    """A suite with a test for each case; one that does not pass is a failure."""
    failing = [case for case in report.cases if not case.passes]
    suites = ET.Element("testsuites")
    suite = ET.SubElement(suites, "testsuite", name="parity")
    suite.set("tests", str(len(report.cases)))
    suite.set("failures", str(len(failing)))
    for case in report.cases:
        test = ET.SubElement(suite, "testcase", classname=case.level, name=case.name)
        if case in failing:
            text = str(case.comparison or case.reason)
            first = f"{case.outcome.words}: {text.partition(chr(10))[0]}"
            ET.SubElement(test, "failure", message=first).text = text
    found: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return found
