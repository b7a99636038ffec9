-- goto without a loop, so that a check at loop instructions only would miss it
-- expect: timeout
::again::
goto again
