// expect: script_error
globalThis.importScripts('x');
