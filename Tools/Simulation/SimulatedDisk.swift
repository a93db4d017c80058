import Glibc
import Synchronization
import ThicketFaultDisk
import ThicketSQLite

/// The disk of one simulated machine: SQLite's calls go to real files, and a model beside them knows what a crash would
/// leave of them. After a crash the machine continues in another folder, with the files that the model has, so that old
/// connections cannot reach them any more.
final class SimulatedDisk {
    private let device: FaultVFS
    private let history: DiskHistory
    private let root: String
    private var generation = 0

    /// File systems stay registered with SQLite, so runs reuse those of runs that have ended.
    private static let idle = Mutex<(devices: [FaultVFS], made: Int, roots: Int)>(([], 0, 0))

    /// - Parameter lies: one of so many syncs is only pretended; nil: none.
    init(lies: Int? = nil) throws(SimulatedDiskError) {
        let (device, number) = Self.idle.withLock { idle in
            idle.roots += 1
            if let device = idle.devices.popLast() { return (device, idle.roots) }
            idle.made += 1
            let made = FaultVFS(
                name: "simulated-\(idle.made)", history: DiskHistory(of: DiskModel()), syncsForReal: false)
            return (made, idle.roots)
        }
        guard let history = device.history else { throw SimulatedDiskError("a disk without history") }
        self.device = device
        self.history = history
        // In memory if possible: nothing here must outlive the process.
        let place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
        root = "\(place)/thicket-simulation-\(getpid())-\(number)"
        device.heal()
        history.reset(to: DiskModel())
        try Self.make(root)
        try Self.make(folder)
        history.lie(oneIn: lies)
        _ = history.takeShape()
    }

    deinit {
        device.crash()
        device.restart()
        history.reset(to: DiskModel())
        history.lie(oneIn: nil)
        Self.idle.withLock { $0.devices.append(device) }
        for generation in 0...generation { Self.clear("\(root)/\(generation)") }
        rmdir(root)
    }

    private var folder: String { "\(root)/\(generation)" }
    /// The VFS name with which databases are opened.
    var name: String { device.name }
    var isCrashed: Bool { device.isCrashed }

    func path(_ file: String) -> String { "\(folder)/\(file)" }

    /// What happened on it since the last call (`DiskHistory.takeShape`).
    func takeShape() -> UInt64? { history.takeShape() }

    // MARK: - Faults

    /// The machine loses power, or its process is killed, at the `count`th change of a file from now.
    func crash(atChange count: Int) { device.fail(FaultRule(.change, .crash, skipping: count - 1)) }

    func fail(_ rule: FaultRule) { device.fail(rule) }

    /// Cancels planned faults that have not happened yet.
    func heal() { device.heal() }

    /// The machine loses power now, or the process is killed.
    func crash() { device.crash() }

    /// All present data becomes durable: a starting point.
    func makeDurable() throws(SimulatedDiskError) {
        var files = [String: [UInt8]]()
        for name in Self.names(folder) where !name.hasSuffix("-shm") {
            files["\(folder)/\(name)"] = try Self.read("\(folder)/\(name)")
        }
        history.reset(to: DiskModel(files))
    }

    /// Starts the machine again.
    /// - Parameter loss: what a crash did to unsynced data.
    func restart(_ loss: DiskModel.Loss, _ random: inout SimulationRandom) throws(SimulatedDiskError) {
        try restart(with: files(after: loss, &random))
    }

    /// The files that a crash would leave, by name.
    func files(after loss: DiskModel.Loss, _ random: inout SimulationRandom) -> [String: [UInt8]] {
        let left = history.model?.crashed(loss, &random) ?? [:]
        var files = [String: [UInt8]]()
        for (path, bytes) in left { files[String(path.split(separator: "/").last ?? "")] = bytes }
        return files
    }

    /// Removes a file that is not part of a store.
    func remove(_ file: String) {
        unlink(path(file))
        history.forget(path(file))
    }

    /// Starts the machine again with a disk that holds these files, by name.
    func restart(with files: [String: [UInt8]]) throws(SimulatedDiskError) {
        device.crash()
        let old = folder
        generation += 1
        try Self.make(folder)
        var model = [String: [UInt8]]()
        for (name, bytes) in files.sorted(by: { $0.key < $1.key }) {
            try Self.write(bytes, to: path(name))
            model[path(name)] = bytes
        }
        history.reset(to: DiskModel(model))
        device.restart()
        Self.clear(old)
    }

    // MARK: - Files

    private static func make(_ folder: String) throws(SimulatedDiskError) {
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
            throw SimulatedDiskError("\(folder): error \(errno)")
        }
    }

    private static func names(_ folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names = [String]()
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { (name) in
                name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    private static func clear(_ folder: String) {
        for name in names(folder) { unlink("\(folder)/\(name)") }
        rmdir(folder)
    }

    static func read(_ path: String) throws(SimulatedDiskError) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw SimulatedDiskError("\(path) cannot be opened: error \(errno)") }
        defer { close(file) }
        var info = stat()
        guard fstat(file, &info) == 0 else { throw SimulatedDiskError("\(path): error \(errno)") }
        var bytes = [UInt8](repeating: 0, count: Int(info.st_size))
        guard pread(file, &bytes, bytes.count, 0) == bytes.count else { throw SimulatedDiskError("\(path): cut short") }
        return bytes
    }

    static func write(_ bytes: [UInt8], to path: String) throws(SimulatedDiskError) {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw SimulatedDiskError("\(path) cannot be made: error \(errno)") }
        defer { close(file) }
        guard Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw SimulatedDiskError("\(path) cannot be written: error \(errno)")
        }
    }
}

/// The real file system below a simulated disk failed: not a fault of the code under test.
struct SimulatedDiskError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
