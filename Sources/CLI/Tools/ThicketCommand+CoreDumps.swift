internal import CThicketFiles

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

extension ThicketCommand {
    /// Prevents core files of this program: they would contain passwords and keys (spec 3.7). Call it before any secret
    /// is read.
    ///
    /// An error of the system is ignored: the memory that holds secrets is excluded from core files anyway.
    public static func forbidCoreDumps() {
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        _ = thicket_forbid_dumps()
    }
}
