import Glibc
import Testing
import ThicketProcesses

@testable import ThicketCLI

/// Steps on files that other programs may change at any moment, on the real file system.
@Suite("Files")
struct FilesTests {
    private let folder = TemporaryFolder("files")
    private func path(_ name: String) -> String { folder.path + "/" + name }
    private func write(_ name: String, _ text: String) throws {
        try Files.replace(path(name), Array(text.utf8), mode: 0o640)
    }
    private func text(_ name: String) -> String? {
        guard case .bytes(let bytes) = Files.read(path(name), bytesMax: 1 << 20) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }
    private func replace(_ name: String, expecting: String?, _ text: String) throws -> Files.Guarded {
        try Files.replace(
            path(name), expecting: expecting.map { Array($0.utf8) }, Array(text.utf8), bytesMax: 1 << 20)
    }

    @Test("a file is replaced only while it holds what is expected")
    func replacing() throws {
        #expect(try replace("a", expecting: nil, "one") == .done)
        #expect(try replace("a", expecting: nil, "two") == .changedMeanwhile)
        #expect(try replace("a", expecting: "other", "two") == .changedMeanwhile)
        #expect(text("a") == "one")
        #expect(try replace("a", expecting: "one", "two") == .done)
        #expect(text("a") == "two")
        #expect(try replace("gone", expecting: "one", "two") == .changedMeanwhile)
        #expect(Files.names(in: folder.path) == ["a"])
    }

    @Test("a file takes the place of a link, unless the file behind the link is meant")
    func links() throws {
        try write("behind", "one")
        symlink(path("behind"), path("link"))
        try Files.replace(path("link"), Array("two".utf8), mode: 0o600, followsLinks: true)
        #expect(text("behind") == "two" && isLink("link"))
        let outcome = try Files.replace(
            path("link"), expecting: Array("two".utf8), Array("three".utf8), bytesMax: 100, followsLinks: true)
        #expect(outcome == .done && text("behind") == "three" && isLink("link"))
        #expect(try replace("link", expecting: "three", "four") == .done)
        #expect(text("behind") == "three" && text("link") == "four" && !isLink("link"))
        unlink(path("link"))
        symlink(path("behind"), path("link"))
        try write("link", "five")
        #expect(text("behind") == "three" && text("link") == "five" && !isLink("link"))
    }

    private func isLink(_ name: String) -> Bool {
        var status = stat()
        return lstat(path(name), &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    @Test("a file that cannot be read is not taken for a changed one: the step fails with the reason")
    func unreadable() {
        let long = String(repeating: "k", count: 256)
        for expected in [nil, "one"] {
            let failure = #expect(throws: Failure.self) { try replace(long, expecting: expected, "two") }
            #expect(failure?.text.hasSuffix("\(long): File name too long") == true, "\(failure?.text ?? "")")
        }
        #expect(Files.names(in: folder.path).isEmpty)
    }

    @Test("a replaced file keeps its permissions")
    func mode() throws {
        try write("a", "one")
        #expect(try replace("a", expecting: "one", "two") == .done)
        var status = stat()
        #expect(stat(path("a"), &status) == 0 && status.st_mode & 0o777 == 0o640)
    }

    @Test("a file is removed only while it holds what is expected")
    func removing() throws {
        try write("a", "one")
        #expect(try Files.remove(path("a"), expecting: Array("two".utf8), bytesMax: 1 << 20) == .changedMeanwhile)
        #expect(text("a") == "one")
        #expect(try Files.remove(path("a"), expecting: Array("one".utf8), bytesMax: 1 << 20) == .done)
        #expect(try Files.remove(path("a"), expecting: Array("one".utf8), bytesMax: 1 << 20) == .changedMeanwhile)
        #expect(Files.names(in: folder.path).isEmpty)
    }

    @Test("a write by a program that opened the file before is not lost")
    func writers() throws {
        try write("a", "one")
        let opened = open(path("a"), O_WRONLY | O_APPEND | O_CLOEXEC)
        defer { close(opened) }
        let replaced = try Files.replace(
            path("a"), expecting: Array("one".utf8), Array("two".utf8), bytesMax: 100, patience: 20)
        #expect(replaced == .changedMeanwhile)
        let removed = try Files.remove(
            path("a"), expecting: Array("one".utf8), bytesMax: 100, patience: 20)
        #expect(removed == .changedMeanwhile)
        #expect(Glibc.write(opened, " more", 5) == 5)
        #expect(text("a") == "one more" && Files.names(in: folder.path) == ["a"])
    }

    @Test("a rename to an existing name fails")
    func renaming() throws {
        try write("a", "one")
        try write("b", "two")
        #expect(Files.renameNew(path("a"), path("b")) == EEXIST)
        #expect(Files.renameNew(path("a"), path("c")) == 0)
        #expect(text("b") == "two" && text("c") == "one" && text("a") == nil)
    }

    @Test("a file that is not regular, or too large, is not read")
    func reading() throws {
        mkdir(path("d"), 0o700)
        mkfifo(path("f"), 0o600)
        try write("a", "12345")
        #expect(Files.read(path("d"), bytesMax: 10) == .failed("it is no regular file"))
        #expect(Files.read(path("f"), bytesMax: 10) == .failed("it is no regular file"))
        #expect(Files.read(path("a"), bytesMax: 4) == .failed("it is larger than 4 bytes"))
        #expect(Files.read(path("none"), bytesMax: 4) == .absent)
    }

    @Test("a tree is removed without following links")
    func tree() throws {
        mkdir(path("t"), 0o700)
        try write("t/x", "1")
        try write("kept", "1")
        symlink(path("kept"), path("t/link"))
        try Files.removeTree(path("t"))
        #expect(Files.names(in: folder.path) == ["kept"])
    }
}
