module railbus.test/railbus

go 1.23
