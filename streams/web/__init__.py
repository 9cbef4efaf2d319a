"""What an operator sees: the page, and the HTTP interface that it uses (docs/operator-page.md)."""
