# SPDX-License-Identifier: GPL-2.0-only
"""The function for the Functions Framework."""

from work import serve


def handle(request):
    """Serves a flask.Request; a dictionary becomes the JSON of the answer."""
    return serve(request.get_json()["phases"])
