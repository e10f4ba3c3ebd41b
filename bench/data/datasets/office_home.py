"""Office-Home: 65 kinds of objects in four domains; DOMAIN/CLASS/*.jpg.

Of a domain's N pictures in order (by class, then by file name), int(0.7·N) are train, spread evenly.
"""

from typing import ClassVar

import numpy as np

from bench.data.image_folders import ImageFolders, seven_tenths

CLASSES = """
alarm_clock backpack batteries bed bike bottle bucket calculator calendar candles chair clipboards
computer couch curtains desk_lamp drill eraser exit_sign fan file_cabinet flipflops flowers folder fork
glasses hammer helmet kettle keyboard knives lamp_shade laptop marker monitor mop mouse mug notebook oven
pan paper_clip pen pencil postit_notes printer push_pin radio refrigerator ruler scissors screwdriver
shelf sink sneakers soda speaker spoon tv table telephone toothbrush toys trash_can webcam
"""


class OfficeHome(ImageFolders):
    classes: ClassVar[tuple[str, ...]] = tuple(CLASSES.split())
    counts: ClassVar[dict[str, tuple[int, int] | None]] = {
        "art": (1698, 729),
        "clipart": (3055, 1310),
        "product": (3107, 1332),
        "real_world": (3049, 1308),
    }
    stems: ClassVar[tuple[str, ...]] = ("office_home", "OfficeHome", "OfficeHomeDataset_10072016")
    aliases: ClassVar[dict[str, str]] = {
        "realworld": "real_world",
        "real": "real_world",
        "clip_art": "clipart",
        "flip_flops": "flipflops",
        "post_it_notes": "postit_notes",
        "tooth_brush": "toothbrush",
    }
    origin: ClassVar[str] = (
        "put the Office-Home pictures there as office_home/ or office_home.zip with "
        "Art|Clipart|Product|Real World/CLASS/*.jpg inside, or run `bench data import office_home PATH`"
    )

    def in_train(self, positions: np.ndarray) -> np.ndarray:
        return seven_tenths(positions)
