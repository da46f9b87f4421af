// expect: script_error
require('fs');
