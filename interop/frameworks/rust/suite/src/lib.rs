//! azservicebus against Railbus; `tests/` has the programs.
