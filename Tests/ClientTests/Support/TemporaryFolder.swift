import Glibc

/// A temporary folder, removed with the value.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        var template = Array("/tmp/thicket-client-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw NotAnObject() }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    func file(_ name: String) -> String { "\(path)/\(name)" }

    deinit {
        guard let folder = opendir(path) else { return }
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { unlink(file(name)) }
        }
        closedir(folder)
        rmdir(path)
    }
}
