// Compares JSON files with a schema; fails if one does not follow it.
//
//     NODE_PATH=node_modules node verify/viewers/schema.js SCHEMA FILE...
"use strict";

const fs = require("node:fs");
const Ajv = require("ajv");

const [schema, ...files] = process.argv.slice(2);
const read = (path) => JSON.parse(fs.readFileSync(path, "utf8"));
const follows = new Ajv({ strict: false }).compile(read(schema));
for (const file of files) {
  if (!follows(read(file))) {
    console.error(`${file}: ${JSON.stringify(follows.errors)}`);
    process.exitCode = 1;
  }
}
