import multiprocessing, os, resource, time

names = ("SC_NPROCESSORS_CONF", "SC_NPROCESSORS_ONLN", "SC_PHYS_PAGES", "SC_PAGE_SIZE", "SC_CLK_TCK", "SC_OPEN_MAX")
print(os.cpu_count(), len(os.sched_getaffinity(0)), multiprocessing.cpu_count(), [os.sysconf(name) for name in names])
print(len(os.getloadavg()), resource.getrlimit(resource.RLIMIT_NOFILE), os.uname().machine, time.get_clock_info("monotonic"))
