import Glibc
import ThicketTestSupport

@testable import ThicketServer

/// The stores that must all mean the same.
enum StoreKind: String, CaseIterable, Sendable {
    case memory
    case sqlite

    func make(_ folder: StoreFolder) throws -> any Store {
        switch self {
        case .memory: MemoryStore()
        case .sqlite: try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        }
    }
}

extension StoreSettings {
    static var testing: StoreSettings {
        var settings: StoreSettings = .init()
        settings.busyTimeoutMilliseconds = 50
        settings.mappedBytes = 1 << 26
        return settings
    }
}

/// A folder that is gone when the test is.
final class StoreFolder: Sendable {
    let path: String

    init() {
        var template: [CChar] = Array("/tmp/thicket-storage-XXXXXX".utf8CString)
        path = mkdtemp(&template).map { String(cString: $0) } ?? "/tmp"
        precondition(path != "/tmp", "no temporary folder could be made")
    }

    func path(_ name: String) -> String { path + "/" + name }

    var names: [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name: String = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    deinit {
        for name: String in names { unlink(path(name)) }
        rmdir(path)
    }
}
