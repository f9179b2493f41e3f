"""Family `calculus`: RTEC's rule language, compiled to a columnar plan and
evaluated over sliding windows.

References: [dRTEC]; specification 5.6. Our reading of the paper is in
docs/papers/drtec.md. For editors and evidence: `sandbox.run_sandbox`, every fluent of a
period of history with the rule of each edge.
"""
