// expect: script_error timeout
V8.Db.FromSql({ toString: function () { for (;;) {} } });
