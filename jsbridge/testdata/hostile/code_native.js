// expect: script_error
V8.Cache.Get.constructor('return 1')();
