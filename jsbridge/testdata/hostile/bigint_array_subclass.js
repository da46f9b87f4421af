// expect: script_error timeout limit_memory limit_regex
class A extends BigUint64Array {} var a = new A(1); [a[0]] = ['9'.repeat(1 << 23)];
