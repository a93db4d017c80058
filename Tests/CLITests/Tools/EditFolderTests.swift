import Testing

@testable import ThicketCLI

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

@Suite("The temporary folder of an edit")
struct EditFolderTests {
    @Test("an edit removes the folder of a program that has ended, and leaves those in use, kept or without a lock")
    func sweeping() throws {
        var template = Array("/tmp/thicket-test-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        let place = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        defer { try? Files.removeTree(place) }
        // A lock's file without its lock is what SIGKILL leaves.
        for name in ["dead", "old"] { try Files.makeFolder("\(place)/\(EditFolder.prefix)\(name)") }
        let dead = "\(place)/\(EditFolder.prefix)dead"
        try Files.replace("\(dead)/\(EditFolder.lockName)", [], mode: 0o600)
        try Files.replace("\(dead)/today.txt", Array("clear".utf8), mode: 0o600)
        let used = try EditFolder(in: place)
        let kept = try EditFolder(in: place)
        kept.keep()
        EditFolder.sweep(place)
        #expect(!Files.isFolder(dead))
        #expect(Files.isFolder("\(place)/\(EditFolder.prefix)old"))
        #expect(Files.isFolder(used.path) && Files.isFolder(kept.path))
        used.remove()
        #expect(!Files.isFolder(used.path) && Files.isFolder(kept.path))
    }
}
