// expect: script_error
V8.CurrentUser.Id = 'root'; V8.OsClient = 'other'; return V8.OsClient;
