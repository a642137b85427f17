# SPDX-License-Identifier: GPL-2.0-only
"""The function for AWS Lambda."""

from work import serve


def handler(event, _context):
    """Serves an event; what it returns becomes the JSON of the answer."""
    return serve(event["phases"])
