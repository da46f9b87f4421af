// Runs once in every new runtime, before any script: builds the globals that are easier
// to write in JavaScript, then takes away what no script may have, then freezes all.
// host holds natives; the names in host.roots are every intrinsic there is, because
// Reflect.ownKeys(globalThis) does not list what was not used yet.
(function (host) {
'use strict';
const G = globalThis;
const def = (o, name, value) => Object.defineProperty(o, name, { value, writable: true, configurable: true, enumerable: false });

// ---- web globals -------------------------------------------------------------------
class TextEncoder {
  get encoding() { return 'utf-8'; }
  encode(s = '') { return new Uint8Array(host.utf8Bytes(String(s))); }
}
class TextDecoder {
  constructor(label = 'utf-8') {
    if (!/^(utf-?8|unicode-1-1-utf-8)$/i.test(String(label))) throw new RangeError('TextDecoder: only utf-8 is supported, not ' + label);
  }
  get encoding() { return 'utf-8'; }
  decode(bytes) {
    if (bytes === undefined) return '';
    if (ArrayBuffer.isView(bytes)) bytes = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    return host.utf8Text(bytes);
  }
}
const enc = s => encodeURIComponent(s).replace(/[!'()~]/g, c => '%' + c.charCodeAt(0).toString(16).toUpperCase()).replace(/%20/g, '+');
const dec = s => host.percentDecode(s.replace(/\+/g, ' '));
class URLSearchParams {
  #list = [];
  #changed = null;
  constructor(init = '', changed) {
    if (typeof changed === 'function') this.#changed = changed;
    if (init instanceof URLSearchParams || Array.isArray(init)) {
      for (const [k, v] of init) this.#list.push([String(k), String(v)]);
    } else if (init !== null && typeof init === 'object') {
      for (const k of Object.keys(init)) this.#list.push([k, String(init[k])]);
    } else {
      for (const part of String(init).replace(/^\?/, '').split('&')) {
        if (part === '') continue;
        const i = part.indexOf('=');
        this.#list.push(i < 0 ? [dec(part), ''] : [dec(part.slice(0, i)), dec(part.slice(i + 1))]);
      }
    }
  }
  #touch() { if (this.#changed) this.#changed(this.toString()); }
  append(k, v) { this.#list.push([String(k), String(v)]); this.#touch(); }
  delete(k) { this.#list = this.#list.filter(p => p[0] !== String(k)); this.#touch(); }
  get(k) { const p = this.#list.find(p => p[0] === String(k)); return p ? p[1] : null; }
  getAll(k) { return this.#list.filter(p => p[0] === String(k)).map(p => p[1]); }
  has(k) { return this.#list.some(p => p[0] === String(k)); }
  set(k, v) {
    const i = this.#list.findIndex(p => p[0] === String(k));
    if (i < 0) { this.append(k, v); return; }
    this.#list = this.#list.filter((p, j) => j <= i || p[0] !== String(k));
    this.#list[i] = [String(k), String(v)];
    this.#touch();
  }
  sort() { this.#list.sort((a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0); this.#touch(); }
  forEach(f, self) { for (const [k, v] of this.#list) f.call(self, v, k, this); }
  keys() { return this.#list.map(p => p[0])[Symbol.iterator](); }
  values() { return this.#list.map(p => p[1])[Symbol.iterator](); }
  entries() { return this.#list.map(p => [p[0], p[1]])[Symbol.iterator](); }
  [Symbol.iterator]() { return this.entries(); }
  get size() { return this.#list.length; }
  toString() { return this.#list.map(p => enc(p[0]) + '=' + enc(p[1])).join('&'); }
}
class URL {
  #p;
  #params = null;
  constructor(url, base) { this.#p = host.urlParse(String(url), base === undefined ? '' : String(base)); }
  static canParse(url, base) { try { new URL(url, base); return true; } catch (e) { return false; } }
  get href() { return host.urlText(this.#p); }
  get protocol() { return this.#p.protocol; }
  get username() { return this.#p.username; }
  get password() { return this.#p.password; }
  get hostname() { return this.#p.hostname; }
  get port() { return this.#p.port; }
  get host() { return this.#p.hostname + (this.#p.port ? ':' + this.#p.port : ''); }
  get origin() { return /^(https?|wss?|ftp):$/.test(this.#p.protocol) ? this.#p.protocol + '//' + this.host : 'null'; }
  get pathname() { return this.#p.pathname; }
  get search() { return this.#p.search; }
  get hash() { return this.#p.hash; }
  #set(part, value) { this.#p = host.urlSet(this.#p, part, String(value)); if (part === 'search') this.#params = null; }
  set href(v) { this.#p = host.urlParse(String(v), ''); this.#params = null; }
  set protocol(v) { this.#set('protocol', v); }
  set username(v) { this.#set('username', v); }
  set password(v) { this.#set('password', v); }
  set hostname(v) { this.#set('hostname', v); }
  set port(v) { this.#set('port', v); }
  set host(v) { const m = /^(\[[^\]]*\]|[^:]*)(?::(\d*))?$/.exec(String(v)); if (m) { this.#set('hostname', m[1]); this.#set('port', m[2] || ''); } }
  set pathname(v) { this.#set('pathname', v); }
  set search(v) { this.#set('search', v); }
  set hash(v) { this.#set('hash', v); }
  get searchParams() {
    if (!this.#params) this.#params = new URLSearchParams(this.#p.search, s => { this.#p = host.urlSet(this.#p, 'search', s); });
    return this.#params;
  }
  toString() { return this.href; }
  toJSON() { return this.href; }
}
function structuredClone(value) {
  const seen = new Map();
  const clone = v => {
    if (typeof v === 'function' || typeof v === 'symbol') throw new TypeError('structuredClone: ' + typeof v + 's cannot be cloned');
    if (v === null || typeof v !== 'object') return v;
    if (seen.has(v)) return seen.get(v);
    const keep = c => { seen.set(v, c); return c; };
    if (Array.isArray(v)) { const c = keep(new Array(v.length)); for (const k of Object.keys(v)) c[k] = clone(v[k]); return c; }
    if (v instanceof Date) return keep(new Date(v.getTime()));
    if (v instanceof RegExp) return keep(new RegExp(v.source, v.flags));
    if (v instanceof Map) { const c = keep(new Map()); for (const [k, x] of v) c.set(clone(k), clone(x)); return c; }
    if (v instanceof Set) { const c = keep(new Set()); for (const x of v) c.add(clone(x)); return c; }
    if (v instanceof ArrayBuffer) return keep(v.slice(0));
    if (ArrayBuffer.isView(v)) return keep(new v.constructor(clone(v.buffer), v.byteOffset, v.length));
    if (v instanceof Number || v instanceof String || v instanceof Boolean) return keep(Object(v.valueOf()));
    if (v instanceof Promise || v instanceof WeakMap || v instanceof WeakSet) throw new TypeError('structuredClone: this object cannot be cloned');
    if (v instanceof Error) {
      const kinds = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
      const c = keep(new (kinds[v.name] || Error)(v.message)); def(c, 'stack', v.stack); return c;
    }
    const c = keep({});
    for (const k of Object.keys(v)) Object.defineProperty(c, k, { value: clone(v[k]), writable: true, configurable: true, enumerable: true });
    return c;
  };
  return clone(value);
}
for (const [name, value] of Object.entries({ TextEncoder, TextDecoder, URL, URLSearchParams, structuredClone })) def(G, name, value);
def(G, 'queueMicrotask', { queueMicrotask(f) { Promise.resolve().then(() => { f(); }); } }.queueMicrotask);
for (const name of host.absentTimers) def(G, name, { [name]() { throw new Error(name + host.noTimer); } }[name]);

// ---- size limits -------------------------------------------------------------------
// A buffer's size is checked before it is allocated; the constructor is otherwise itself.
const sized = (name, perItem) => {
  const C = G[name];
  const P = function (...args) {
    if (!new.target) throw new TypeError('Constructor ' + name + " requires 'new'");
    const a = args[0], n = typeof a === 'object' && a !== null && !(a instanceof G.ArrayBuffer) ? a.length : a;
    if (typeof n === 'number' && n * perItem > host.maxBuffer) throw new RangeError(name + ': more than ' + host.maxBuffer + ' bytes');
    return Reflect.construct(C, args, new.target === P ? C : new.target);
  };
  for (const k of Reflect.ownKeys(C)) {
    if (k !== 'prototype') Object.defineProperty(P, k, Object.getOwnPropertyDescriptor(C, k));
  }
  Object.defineProperty(P, 'prototype', { value: C.prototype, writable: false });
  Object.setPrototypeOf(P, Object.getPrototypeOf(C));
  def(C.prototype, 'constructor', P);
  def(G, name, P);
};
const items = { ArrayBuffer: 1, Uint8Array: 1, Int8Array: 1, Uint8ClampedArray: 1, Int16Array: 2, Uint16Array: 2, Int32Array: 4, Uint32Array: 4, Float32Array: 4, Float64Array: 8, BigInt64Array: 8, BigUint64Array: 8 };
for (const name of Object.keys(items)) sized(name, items[name]);
{
  // Proxies of proxies nest Go frames; a few levels are all that anyone needs.
  const C = Proxy, { proxyDepth: depth, countProxy } = host;
  const guard = (t, h) => { if (depth(t) + depth(h) > 64) throw new RangeError('Proxy: nested too deeply'); countProxy(); };
  const P = function Proxy(t, h) {
    if (!new.target) throw new TypeError("Constructor Proxy requires 'new'");
    guard(t, h);
    return new C(t, h);
  };
  def(P, 'revocable', { revocable(t, h) { guard(t, h); return C.revocable(t, h); } }.revocable);
  def(G, 'Proxy', P);
}

// ---- no code generation ------------------------------------------------------------
const noCode = function Function() { throw new EvalError('code generation from strings is not available'); };
Object.defineProperty(noCode, 'prototype', { value: Function.prototype });
const generator = Object.getPrototypeOf(function* () {}), asyncFn = Object.getPrototypeOf(async function () {});
for (const p of [Function.prototype, generator, asyncFn]) Object.defineProperty(p, 'constructor', { value: noCode, writable: true, configurable: true });
def(G, 'Function', noCode);
def(G, 'eval', { eval() { throw new EvalError('eval is not available'); } }.eval);
delete G.GoError;

// ---- freeze ------------------------------------------------------------------------
// Assigning to an inherited property that is frozen fails in JavaScript ("override
// mistake"), so what scripts do override becomes an accessor that defines on the receiver.
const behind = []; // values that only an accessor leads to
const overridable = (proto, names) => {
  for (const name of names) {
    const d = Object.getOwnPropertyDescriptor(proto, name);
    if (!d || !('value' in d)) continue;
    const value = d.value;
    behind.push(value);
    Object.defineProperty(proto, name, {
      get: host.constant(value),
      set(v) {
        if (this === proto) throw new TypeError('cannot change a built-in: ' + name);
        if (this === null || typeof this !== 'object' && typeof this !== 'function') return;
        Object.defineProperty(this, name, { value: v, writable: true, configurable: true, enumerable: true });
      },
      enumerable: false, configurable: true,
    });
  }
};
const ObjectNames = ['constructor', 'toString', 'toLocaleString', 'valueOf', 'hasOwnProperty', 'isPrototypeOf', 'propertyIsEnumerable'];
overridable(Object.prototype, ObjectNames);
overridable(Function.prototype, ['name', 'length', 'toString', 'constructor', 'call', 'apply', 'bind']);
for (const E of [Error, AggregateError, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]) {
  overridable(E.prototype, ['name', 'message', 'toString', 'constructor', 'stack', 'cause']);
}
for (const C of [Array, Date, RegExp, Map, Set, WeakMap, WeakSet, Promise, String, Number, Boolean, TextEncoder, TextDecoder, URL, URLSearchParams]) {
  overridable(C.prototype, ['constructor', 'toString', 'toLocaleString', 'valueOf', 'toJSON', 'then', 'catch', 'finally', 'exec', 'test', 'get', 'set', 'has', 'delete', 'size', 'length', 'concat', 'slice', 'map', 'filter', 'forEach', 'push', 'pop', 'sort', 'join', 'find', 'keys', 'values', 'entries'].filter(n => ObjectNames.includes(n) || n === 'toJSON' || C === Promise));
}

// ---- guards that the compiler puts into scripts ------------------------------------------
const numeric = x => x++; // what arithmetic takes an object for
const operand = x => typeof x === 'object' || typeof x === 'function' ? numeric(x) : x;
host.numeric = numeric;
// primitive is the language's own ToPrimitive, so that a guard sees what will be used.
const isObject = x => typeof x === 'object' ? x !== null : typeof x === 'function';
const { apply } = Reflect, { toPrimitive } = Symbol;
const primitive = (x, hint) => {
  if (!isObject(x)) return x;
  const own = x[toPrimitive];
  if (own !== undefined && own !== null) {
    const v = apply(own, x, [hint]);
    if (!isObject(v)) return v;
  } else {
    const text = hint === 'string';
    let f = text ? x.toString : x.valueOf, v = x;
    if (typeof f === 'function' && !isObject(v = apply(f, x, []))) return v;
    if (typeof (f = text ? x.valueOf : x.toString) === 'function' && !isObject(v = apply(f, x, []))) return v;
  }
  throw new TypeError('Cannot convert object to primitive value');
};
host.primitive = primitive;
const rest = Symbol('rest');
Object.defineProperty(Object.prototype, rest, { get: host.restOf, enumerable: false });
const less = { '<': (a, b) => a < b, '>': (a, b) => a > b, '<=': (a, b) => a <= b, '>=': (a, b) => a >= b };
host.guards = [host['%args'], host['%own'], rest, host['%big'],
  (a, b) => { a = operand(a); b = operand(b); host.limitPower(a, b); return a ** b; },
  n => { n = operand(n); host.limitShift(n); return n; },
  (a, b) => {
    if (isObject(a)) { if (!isObject(b) && b !== undefined && b !== null) a = primitive(a, 'default'); } else if (isObject(b) && a !== undefined && a !== null) b = primitive(b, 'default');
    host.limitCompare(a, b);
    return a == b;
  },
  (a, b, op) => { a = primitive(a, 'number'); b = primitive(b, 'number'); host.limitCompare(a, b); return less[op](a, b); },
  (n, shift) => { n = operand(n); host.limitStep(n, shift); return n; }, host['%text'], host['%shown']];

const done = new Set(), todo = [];
const visit = x => {
  if ((typeof x === 'object' && x !== null || typeof x === 'function') && !done.has(x)) { done.add(x); todo.push(x); }
};
const freeze = root => {
  visit(root);
  while (todo.length > 0) {
    const x = todo.pop();
    const keys = Reflect.ownKeys(x);
    if (typeof x === 'function') host.guard(x);
    if (x !== G) Object.freeze(x);
    visit(Object.getPrototypeOf(x));
    for (let i = 0; i < keys.length; i++) {
      const d = Reflect.getOwnPropertyDescriptor(x, keys[i]);
      if (d !== undefined) { visit(d.value); visit(d.get); visit(d.set); }
    }
  }
};
for (const name of host.roots) freeze(G[name]);
freeze(generator); freeze(asyncFn);
freeze([][Symbol.iterator]()); freeze(''[Symbol.iterator]()); freeze(new Map()[Symbol.iterator]()); freeze(new Set()[Symbol.iterator]());
freeze('a'.matchAll(/a/g)); freeze((function* () {})());
for (const o of behind) freeze(o);
freeze(host.guards); freeze(less); freeze(numeric); freeze(operand); freeze(primitive); freeze(isObject);
for (const o of host.frozen) freeze(o);
freeze(G);
Object.freeze(G);
return done.size;
})
