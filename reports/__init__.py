"""From the records of runs to tables, statistics, figures and a page: pure functions, without torch.

Packages, each of which imports only from those above it:

    published/   numbers that papers print, as data
    numbers/     accuracies, AVG, statistics, rankings and curves, computed from records
    combine/     several runs merged into one, or two runs compared
    tables/      numbers as tables: columns, captions and footnotes, but no markup
    figures/     numbers as pictures
    render/      a table as Markdown, LaTeX, CSV, HTML, terminal text or notebook output
    page/        a run as one HTML file
    frames.py    a run as pandas data frames
    report.py    all of it together: what `bench run`, `bench report` and the Python API use
    site/        the results of many suites as a static site

Of `bench`, only errors, records and the loading of suites are used here.
"""
