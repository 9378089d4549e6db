module corvo.dev/go

go 1.23
