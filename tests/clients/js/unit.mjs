// The client's own tests, which need no server.

import '../../../clients/js/test/connection.test.js';
import '../../../clients/js/test/events.test.js';
import '../../../clients/js/test/waits.test.js';
