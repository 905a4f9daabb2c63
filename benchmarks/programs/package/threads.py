import sys
import threading

sys.path.insert(0, 'src')

from lab.learning import train

thread = threading.Thread(target=train)
thread.start()
thread.join()
