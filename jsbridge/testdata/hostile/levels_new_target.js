// expect: limit_stack
var F = function () {}.bind(); Object.defineProperty(F, 'prototype', { get: Reflect.construct.bind(null, Object, [], F) }); return Reflect.construct(Object, [], F);
