// The types of the JavaScript client: a program that uses every name compiles, what they refuse does not, and they name what
// there is.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as client from '../../../clients/js/src/index.js';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));

const compiled = spawnSync(process.execPath, [path('../node_modules/typescript/bin/tsc'), '--project', path('../types')], { encoding: 'utf8' });
assert.equal(compiled.status, 0, compiled.stdout + compiled.stderr);

const types = readFileSync(path('../../../clients/js/src/index.d.ts'), 'utf8');
const exported = [...types.matchAll(/^export (interface|type|class) (\w+)/gm)].map(([, kind, name]) => ({ kind, name }));
const uses = readFileSync(path('../types/uses.ts'), 'utf8');
for (const { name } of exported) assert.ok(new RegExp(`^import .*\\b${name}\\b`, 'm').test(uses), `${name} is not used`);
const classes = exported.filter(({ kind }) => kind === 'class').map(({ name }) => name);
assert.deepEqual(classes.sort(), Object.keys(client).sort(), 'the types name what there is');
