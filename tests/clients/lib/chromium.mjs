// A browser without a screen.

import { chromium } from 'playwright-core';

/** Debian's, as tests/run installs it. */
const executablePath = process.env.SEQTIDE_CHROMIUM ?? '/usr/bin/chromium-headless-shell';

/** A container's kernel may not give a sandbox, and the pages are our own. */
export const launch = () => chromium.launch({ executablePath, args: ['--no-sandbox'] });
