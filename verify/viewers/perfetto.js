// Asks the parser of Perfetto's viewer, a WebAssembly module that runs in a worker of a browser, about a trace.
//
//     node verify/viewers/perfetto.js FOLDER TRACE SQL...
//
// FOLDER has the viewer's engine_bundle.js and trace_processor.wasm. Prints a line of JSON with the rows of each query. Fails
// if the parser refuses the trace or a query.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const [folder, trace, ...queries] = process.argv.slice(2);

process.on("uncaughtException", (error) => {
  console.error(`${trace}: ${error.message}`);
  process.exit(1);
});

// As much of a browser's worker as the engine asks for.
class FileRequest {
  open(_method, url) {
    this.bytes = fs.readFileSync(path.join(folder, path.basename(url)));
  }
  send() {
    this.status = 200;
    this.response = this.bytes.buffer.slice(this.bytes.byteOffset, this.bytes.byteOffset + this.bytes.byteLength);
  }
}
const worker = vm.createContext({
  console: { log() {}, info() {}, warn() {}, error() {} },
  location: { href: "https://viewer.invalid/engine_bundle.js" },
  TextDecoder, TextEncoder, URL, performance, crypto, setTimeout,
  WorkerGlobalScope: class {},
  XMLHttpRequest: FileRequest,
  importScripts() {},
});
worker.self = worker;
vm.runInContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), worker);
const Bytes = vm.runInContext("Uint8Array", worker);

// The wire form of protocol buffers.
function varint(number) {
  const bytes = [];
  for (let rest = BigInt(number); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
}
const numberField = (field, number) => Buffer.concat([varint(field << 3), varint(number)]);
const bytesField = (field, bytes) => Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);

class Message {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.bytes[this.at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asIntN(64, value);
    }
  }
  take(count) {
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }
  *fields() {
    while (this.at < this.bytes.length) {
      const tag = Number(this.varint());
      const take = { 0: () => this.varint(), 1: () => this.take(8), 2: () => this.take(Number(this.varint())), 5: () => this.take(4) };
      yield [tag >> 3, take[tag & 7]()];
    }
  }
  all(field) {
    return [...new Message(this.bytes).fields()].filter(([number]) => number === field).map(([, value]) => value);
  }
  text(field) {
    return this.all(field).map(String).join("");
  }
}

// One request of the engine, and the message in its reply (perfetto/trace_processor/trace_processor.proto).
const port = { postMessage: (bytes) => port.replies.push(Buffer.from(bytes)) };
let sequence = 0;
function ask(method, reply, ...body) {
  port.replies = [];
  const request = Buffer.concat([numberField(1, ++sequence), numberField(2, method), ...body]);
  port.onmessage({ data: Bytes.from(bytesField(1, request)) });
  const rpc = new Message(Buffer.concat(port.replies));
  return rpc.all(1).flatMap((part) => new Message(part).all(reply)).map((bytes) => new Message(bytes));
}
const APPEND = [1, 201], FINALIZE = [2, 212], QUERY = [3, 203];

function refuse(error) {
  if (error) throw new Error(error);
}

function varints(bytes) {
  const message = new Message(bytes), found = [];
  while (message.at < bytes.length) found.push(Number(message.varint()));
  return found;
}

// The cells of a part of a result, in their order: of each kind a list, and a list of kinds.
function cells(batch) {
  const numbers = batch.all(2).flatMap(varints);
  const doubles = batch.all(3).flatMap((bytes) => Array.from({ length: bytes.length / 8 }, (_, at) => bytes.readDoubleLE(at * 8)));
  const texts = batch.all(5).flatMap((bytes) => String(bytes).split("\0").slice(0, -1));
  const lists = { 1: [], 2: numbers, 3: doubles, 4: texts };
  return batch.all(1).flatMap((kinds) => [...kinds]).map((kind) => (kind === 1 ? null : lists[kind].shift()));
}

function rows(results) {
  const columns = results.flatMap((result) => result.all(1)).length;
  results.forEach((result) => refuse(result.text(2)));
  const all = results.flatMap((result) => result.all(3)).flatMap((batch) => cells(new Message(batch)));
  return Array.from({ length: all.length / columns }, (_, row) => all.slice(row * columns, (row + 1) * columns));
}

worker.onmessage({ data: port });
// The engine is ready once its promises are settled.
setTimeout(() => {
  refuse(ask(...APPEND, bytesField(101, fs.readFileSync(trace))).map((reply) => reply.text(2)).join(""));
  refuse(ask(...FINALIZE).map((reply) => reply.text(1)).join(""));
  for (const query of queries) {
    console.log(JSON.stringify(rows(ask(...QUERY, bytesField(103, bytesField(1, Buffer.from(query)))))));
  }
}, 0);
