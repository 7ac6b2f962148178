// The Grafana board by Grafana's own types: no member that Grafana does not know, no value that it does not take.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const text = await readFile(path('../../../dashboards/grafana/seqtide.json'), 'utf8');

/** What is wrong with each of some boards, by TypeScript's compiler. */
function faults(boards) {
  const sources = new Map(boards.map((board, at) => [path(`./${at}.ts`), `import type { Board } from './board.d.ts';\nexport const board: Board = ${JSON.stringify(board)};\n`]));
  const options = { strict: true, noEmit: true, skipLibCheck: true, module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, types: [] };
  const host = ts.createCompilerHost(options);
  const read = host.getSourceFile.bind(host);
  host.getSourceFile = (name, target, ...more) => (sources.has(name) ? ts.createSourceFile(name, sources.get(name), target) : read(name, target, ...more));
  const program = ts.createProgram([...sources.keys()], options, host);
  const elsewhere = [...program.getGlobalDiagnostics(), ...program.getOptionsDiagnostics(), ...program.getSemanticDiagnostics(program.getSourceFile(path('./board.d.ts')))];
  return [...sources.keys()].map((name) => {
    const source = program.getSourceFile(name);
    const found = [...elsewhere, ...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
    return found.map(({ start, messageText }) => `${source.text.slice(start, start + 60)}…: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`);
  });
}

const panel = (board, type) => board.panels.find((panel) => panel.type === type);
/** By what is wrong: how a board is made so. */
const SPOILT = {
  'an option that no panel has': (board) => (panel(board, 'timeseries').options.legend.displaymode = 'list'),
  'a value that an option does not take': (board) => (panel(board, 'timeseries').fieldConfig.defaults.custom.drawStyle = 'lines'),
  'an option of another kind of panel': (board) => (panel(board, 'stat').options.legend = panel(board, 'timeseries').options.legend),
  'a kind of panel that is not described': (board) => (panel(board, 'stat').type = 'graph'),
  'a unit that Grafana does not know': (board) => (panel(board, 'stat').fieldConfig.defaults.unit = 'documents'),
  'a query that asks nothing': (board) => delete panel(board, 'timeseries').targets[0].expr,
  'a kind of variable that there is none of': (board) => (board.templating.list[1].type = 'label'),
  'no version of the schema': (board) => delete board.schemaVersion,
  'a panel without its place': (board) => delete panel(board, 'stat').gridPos.w,
};

test('the board is what Grafana describes, and what it does not describe is found', () => {
  const spoilt = Object.values(SPOILT).map((spoil) => {
    const board = JSON.parse(text);
    spoil(board);
    return board;
  });
  const [good, ...wrong] = faults([JSON.parse(text), ...spoilt]);
  assert.deepEqual(good, []);
  Object.keys(SPOILT).forEach((what, at) => assert.notDeepEqual(wrong[at], [], what));
});
