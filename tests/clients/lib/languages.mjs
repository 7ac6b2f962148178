// The real data set: the languages of ISO 639-3, about 7,900, with names in many scripts' letters.

import assert from 'node:assert/strict';
import { iso6393 } from 'iso-639-3';

/** One document a language; its id is the language's three-letter code. */
export const languages = iso6393.map((language) => ({ _id: language.iso6393, ...language }));

assert.ok(languages.length >= 5000, `the data set has only ${languages.length} records`);
