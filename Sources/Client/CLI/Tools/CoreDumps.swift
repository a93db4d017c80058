internal import CThicketFiles

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

extension ThicketCommand {
    /// No core file of this program: passwords and keys would be in it (spec 3.7). Call it before anything is read.
    ///
    /// Nothing is said when the system refuses: the memory that holds secrets is left out of core files as it is.
    public static func forbidCoreDumps() {
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        _ = thicket_forbid_dumps()
    }
}
