"""The Python API behind `import bench`: functions of the command line, with objects in and out."""
