#pragma once

// The Linux header that Swift's Glibc module leaves out.

#include <sys/epoll.h>
