"""What an application that was killed leaves is removed; what one that runs has is not."""

import asyncio
import os

from sojourn.spark.host.temporary_folder import remove_after


def test_the_folder_goes_if_the_process_is_gone(tmp_path):
    folder = tmp_path / "left"
    (folder / "spark").mkdir(parents=True)
    asyncio.run(remove_after(os.getppid() + 1, folder, for_s=0.2))
    assert not folder.exists()


def test_the_folder_stays_while_the_process_is_there(tmp_path):
    asyncio.run(remove_after(os.getppid(), tmp_path, within_s=0.2))
    assert tmp_path.exists()
