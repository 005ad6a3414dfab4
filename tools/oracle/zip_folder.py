# SPDX-License-Identifier: Apache-2.0
"""zip_folder.py - a folder as a zip file whose bytes depend on the files alone."""
import os
import shutil
import zipfile


def pack(folder):
    """In the folder's place."""
    with zipfile.ZipFile(folder + ".zip", "w", zipfile.ZIP_DEFLATED) as z:
        for root, _, files in sorted(os.walk(folder)):
            for f in sorted(files):
                path = os.path.join(root, f)
                info = zipfile.ZipInfo(os.path.relpath(path, folder), (2026, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                with open(path, "rb") as data:
                    z.writestr(info, data.read())
    shutil.rmtree(folder)
