export { SeqtideError } from './error.js';
export { Seqtide } from './seqtide.js';
