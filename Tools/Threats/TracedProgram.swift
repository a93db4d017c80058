import Glibc
import ThicketProcesses

/// The data that a program passed to the kernel, by strace: every byte that it wrote to a file, also to one that was
/// removed or overwritten later, every name, and every peer of its connections.
public struct TracedProgram: Sendable {
    public static let tracer = "/usr/bin/strace"
    /// Whether Debian's strace is installed (`./dev setup --tests`).
    public static var isThere: Bool { access(tracer, X_OK) == 0 }

    /// One call to the kernel.
    public struct Call: Sendable {
        public let name: String
        /// The first argument, if it is a descriptor.
        public let descriptor: Int32?
        /// The target of the descriptor: a path, `TCP:[…]`, `pipe:[…]`.
        public let target: String
        /// Every text among the arguments, in their order: paths and written bytes.
        public let texts: [[UInt8]]
        /// The line that strace printed.
        public let line: String

        /// Whether it writes to the terminal or to the program's parent.
        public var isOutput: Bool { descriptor == 1 || descriptor == 2 }
        public var isSocket: Bool { ["TCP", "UDP", "UNIX", "NETLINK", "socket"].contains { target.hasPrefix($0) } }
    }

    /// Calls by which bytes leave a process, to a file or a peer; and those by which files get names.
    private static let calls: String =
        "open,openat,openat2,creat,write,pwrite64,writev,pwritev,pwritev2,sendto,sendmsg,sendmmsg,connect,mmap,rename,"
        + "renameat,renameat2,link,linkat,symlink,symlinkat,mkdir,mkdirat,unlink,unlinkat,ftruncate,copy_file_range,sendfile,"
        + "splice,vmsplice,tee,memfd_create,io_uring_setup,setxattr,lsetxattr,fsetxattr,mknod,mknodat"
    /// Bytes of one call that are printed; a longer text would be cut, which is refused.
    private static let textBytesMax = 8 << 20

    public let outcome: ChildProcess.Outcome
    public let calls: [Call]

    /// Runs a program to its end.
    /// - Throws: if it cannot be traced, or strace's output cannot be parsed.
    public init(
        _ words: [String], input: String = "", variables: [String: String] = [:], seconds: Int = 120
    ) throws(ProcessError) {
        let folder = TemporaryFolder("trace")
        // A file for each thread, so that lines of two never mix.
        outcome = try ChildProcess.run(
            [
                Self.tracer, "-ff", "-qq", "-yy", "-xx", "-e", "signal=none", "-s", "\(Self.textBytesMax)", "-e",
                "trace=\(Self.calls)", "-o", "\(folder.path)/thread",
            ] + words, input: input, variables: variables, seconds: seconds)
        var calls = [Call]()
        for file in ThreatHouse.files(folder.path) {
            for line in file.bytes.split(separator: 10) { calls.append(try Self.call(line)) }
        }
        guard !calls.isEmpty else { throw ProcessError("strace saw nothing: \(outcome.errors)") }
        self.calls = calls
    }

    /// Files that were opened for writing, created, or the target of a renaming, without devices.
    public var written: Set<String> {
        var paths = Set<String>()
        for call in calls where !call.line.contains(") = -1 ") {
            let isOpen =
                call.name.hasPrefix("open") && (call.line.contains("O_WRONLY") || call.line.contains("O_RDWR"))
            if isOpen || ["creat", "mkdir", "mkdirat", "memfd_create", "mknod", "mknodat"].contains(call.name) {
                paths.formUnion(call.texts.prefix(1).map { String(decoding: $0, as: UTF8.self) })
            } else if call.name.hasPrefix("rename") || call.name.contains("link") && !call.name.hasPrefix("unlink") {
                paths.formUnion(call.texts.map { String(decoding: $0, as: UTF8.self) })
            }
        }
        return paths.filter { !$0.hasPrefix("/dev/") && !$0.hasPrefix("/proc/") }
    }

    /// Calls that would carry bytes past this recording: shared writable file mappings, copies inside of the kernel,
    /// rings of calls. The index beside a database in WAL mode (`-shm`) holds page numbers and no content.
    public var unseen: [String] {
        let hidden: Set<String> = ["copy_file_range", "sendfile", "splice", "vmsplice", "tee", "io_uring_setup"]
        return calls.filter { (call: Call) in
            let isShared =
                call.name == "mmap" && call.line.contains("MAP_SHARED") && call.line.contains("PROT_WRITE")
                && !call.line.contains("MAP_ANONYMOUS") && !call.line.contains(Self.shmEnd)
            return isShared || hidden.contains(call.name)
        }.map(\.line)
    }

    /// `-shm>` as it is printed behind a descriptor.
    private static let shmEnd = "\\x2d\\x73\\x68\\x6d>"

    // MARK: Reading lines

    /// `name(5<\x2f…>, "\x00…", 3) = 3`.
    private static func call(_ line: ArraySlice<UInt8>) throws(ProcessError) -> Call {
        let text = String(decoding: line, as: UTF8.self)
        guard let open = line.firstIndex(of: UInt8(ascii: "(")) else { throw ProcessError("strace said: \(text)") }
        // Three dots follow a text that was cut.
        guard !text.contains("\"...") else { throw ProcessError("a text of more than \(textBytesMax) bytes") }
        let digits = line[(open + 1)...].prefix { (48...57).contains($0) }
        let descriptor = Int32(String(decoding: digits, as: UTF8.self))
        var target = ""
        let behind = line[digits.endIndex...]
        if descriptor != nil, behind.first == UInt8(ascii: "<") {
            target = String(decoding: unescaped(behind.dropFirst().prefix { $0 != UInt8(ascii: ">") }), as: UTF8.self)
        }
        return Call(
            name: String(decoding: line[..<open], as: UTF8.self), descriptor: descriptor, target: target,
            texts: texts(line), line: text)
    }

    /// The texts between quotes. With `-xx` no text contains a quote.
    private static func texts(_ line: ArraySlice<UInt8>) -> [[UInt8]] {
        let parts = line.split(separator: UInt8(ascii: "\""), omittingEmptySubsequences: false)
        return parts.indices.filter { $0 % 2 == 1 }.map { unescaped(parts[$0]) }
    }

    /// `\x2f` is a byte; other letters are literal.
    private static func unescaped(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var bytes = [UInt8]()
        bytes.reserveCapacity(text.count / 4)
        var place = text.startIndex
        while place < text.endIndex {
            if text[place] == UInt8(ascii: "\\"), place + 3 < text.endIndex, text[place + 1] == UInt8(ascii: "x") {
                bytes.append(digit(text[place + 2]) << 4 | digit(text[place + 3]))
                place += 4
            } else {
                bytes.append(text[place])
                place += 1
            }
        }
        return bytes
    }

    private static func digit(_ letter: UInt8) -> UInt8 { letter <= 57 ? letter &- 48 : letter &- 87 }
}
