echo Restoring environment
