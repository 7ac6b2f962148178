// The client's own tests, which need no server.

import '../../../clients/js/test/connection.test.js';
import '../../../clients/js/test/given.test.js';
import '../../../clients/js/test/lines.test.js';
import '../../../clients/js/test/loop.test.js';
import '../../../clients/js/test/lost.test.js';
import '../../../clients/js/test/order.test.js';
import '../../../clients/js/test/refused.test.js';
import '../../../clients/js/test/room.test.js';
import '../../../clients/js/test/shared.test.js';
import '../../../clients/js/test/thrown.test.js';
import '../../../clients/js/test/tokens.test.js';
import '../../../clients/js/test/turns.test.js';
import '../../../clients/js/test/waits.test.js';
