"""Ray Tune's part: processes that take one job after another, and how their records reach the driver."""

import bench.cluster  # noqa: F401  before Ray is imported, as it sets variables that Ray reads
