import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketCLI

@Suite("File names and keys")
struct FileNameTests {
    @Test(
        "a file name gives a key, and the key a file name",
        arguments: [
            ("plan.json", "plan", .json), ("plan.md", "plan.md", .text), ("plan", "plan", .text),
            ("my notes.txt", "my%20notes.txt", .text), ("100%.txt", "100%25.txt", .text),
            ("Übersicht.json", "%C3%9Cbersicht", .json), ("a.json.json", "a.json", .json),
            ("user@example.com", "user@example.com", .text), ("=", "%3D", .text), ("a=b.txt", "a%3Db.txt", .text),
            ("=a%2Fb.json", "a%2Fb", .json), ("=100%", "100%", .text), ("=.hidden", ".hidden", .text),
            ("=..", "..", .text),
        ] as [(String, String, FileKind)])
    func pairs(name: String, key: String, kind: FileKind) throws {
        let file = try FileName(file: name)
        #expect(file.key == key && file.kind == kind)
        // The other way gives the plain name of the key, which gives the same key.
        let back = try FileName(key: key, kind: kind)
        #expect(try FileName(file: back.name).key == key)
    }

    @Test(
        "keys that no file name could give are written as they are after an equals sign",
        arguments: [
            ("a%2Fb", "=a%2Fb"), ("100%", "=100%"), (".hidden", "=.hidden"), ("..", "=.."), (".", "=."),
            ("%00", "=%00"), ("%41", "=%41"), ("%c3%9c", "=%c3%9c"), ("%FF", "=%FF"), ("%3Dx", "=%3Dx"),
            ("%7E", "=%7E"), ("x%7E", "=x%7E"), ("a.tmp", "=a.tmp"), ("plan", "plan"), ("a%20b", "a b"),
        ] as [(String, String)])
    func unusual(key: String, name: String) throws {
        let file = try FileName(key: key, kind: .text)
        #expect(file.name == name)
        #expect(try FileName(file: file.name) == file)
    }

    @Test("a short form after an equals sign, as older programs wrote it, is the file of its key")
    func olderNames() throws {
        let letters = String(repeating: "日", count: 60)
        let short = try FileName(file: letters + ".txt")
        #expect(short.key.hasPrefix("%@"))
        #expect(try FileName(file: "=" + short.key).key == short.key)
        #expect(try FileName(file: "=" + short.key + ".json").key == short.key)
        // New files get the more readable name.
        #expect(try FileName(key: short.key, kind: .text).name == letters + ".txt")
        #expect(try FileName(file: "=%@").key == "%@")
        #expect(try FileName(file: "=%@ no key").key == "%3D%25@%20no%20key")
    }

    @Test("a text whose key ends like a JSON file becomes a JSON file")
    func jsonEnding() throws {
        let file = try FileName(key: "a.json", kind: .text)
        #expect(file.name == "a.json.json" && file.kind == .json)
        #expect(try FileName(file: file.name).key == "a.json")
    }

    @Test(
        "hidden and temporary files belong to no key",
        arguments: [".git", ".thicket", ".plan.swp", "plan~", "#plan#", "4913", "x.swp", "x.tmp", "x.part", ""])
    func passedOver(name: String) {
        #expect(throws: FileName.Problem.passedOver) { try FileName(file: name) }
    }

    @Test("names whose keys would be too long are refused")
    func long() throws {
        #expect(throws: FileName.Problem.keyTooLong) { try FileName(file: String(repeating: "ä", count: 100)) }
        #expect(throws: FileName.Problem.keyTooLong) {
            try FileName(key: String(repeating: "k", count: 251), kind: .json)
        }
        #expect(try FileName(key: String(repeating: "k", count: 250), kind: .json).name.utf8.count == 255)
        #expect(try FileName(key: String(repeating: "k", count: 255), kind: .text).name.utf8.count == 255)
    }

    @Test("names whose escapes are longer than a key have a short form; all others keep the key they had")
    func shortForm() throws {
        let name = String(repeating: "木", count: 28) + ".md"
        #expect(try FileName(file: name).key.hasPrefix("%E6%9C%A8"))
        let long = String(repeating: "木", count: 60) + ".md"
        let file = try FileName(file: long)
        #expect(file.key.hasPrefix("%@") && file.key.utf8.count == 2 + 244)
        #expect(try FileName(key: file.key, kind: .text) == file)
        // A key that looks like a short form, of a name that does not need one, is written as it is.
        for key in ["%@cGxhbg", "%@", "%@4pyT", "%@@", "%@-_"] {
            let plain = try FileName(key: key, kind: .text)
            #expect(plain.name == "=" + key)
            #expect(try FileName(file: plain.name).key == key)
        }
    }

    @Test("any key becomes a file name that gives the key again", arguments: [UInt64(1), 2])
    func keys(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let letters: [Character] = Array("ab.%@_-2F0Ej~=C39c".filter { $0 != "~" && $0 != "=" })
        for _ in 0..<4_000 {
            let key = String(
                (0..<Int.random(in: 1...12, using: &random)).compactMap { _ in letters.randomElement(using: &random) })
            for kind: FileKind in [.json, .text] {
                let file = try FileName(key: key, kind: kind)
                let back = try FileName(file: file.name)
                #expect(back.key == key && back.kind == file.kind, "seed \(seed), key \(key) as \(file.name)")
            }
        }
    }

    @Test("different file names have different keys", arguments: [UInt64(3), 4])
    func names(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let letters: [Character] = Array("ab.% =2F0EäC3D%")
        var known = [String: String]()
        for _ in 0..<6_000 {
            let name: String = String(
                (0..<Int.random(in: 1...6, using: &random)).compactMap { _ in letters.randomElement(using: &random) })
            guard let file: FileName = try? FileName(file: name), file.kind == .text else { continue }
            #expect((try? EntityKey(file.key)) != nil, "\(name)")
            let other = known[file.key] ?? name
            #expect(other.utf8.elementsEqual(name.utf8), "seed \(seed): \(name) and \(other) are both \(file.key)")
            known[file.key] = name
        }
    }

    @Test(
        "long names of all scripts give keys and back, one to one; only a name beyond the short form has no key",
        arguments: [UInt64(5), 6, 7])
    func longUnicode(seed: UInt64) throws {
        var names = RandomNames(seed: seed)
        var known: [String: String] = [:]
        var (short, tooLong) = (0, 0)
        for _ in 0..<4_000 {
            let name = names.next()
            let place: Comment = "seed \(seed): \(name.unicodeScalars.map { String($0.value, radix: 16) })"
            let stem = name.hasSuffix(".json") ? String(name.dropLast(5)) : name
            let file: FileName
            do throws(FileName.Problem) { file = try FileName(file: name) } catch {
                // 254 characters of base64url hold 190 bytes; the shortest escape of those is longer than a key, too.
                #expect(error == .keyTooLong && stem.utf8.count > 190, place)
                tooLong += 1
                continue
            }
            if file.key.hasPrefix("%@") { short += 1 }
            #expect((try? EntityKey(file.key)) != nil, place)
            let back = try FileName(key: file.key, kind: file.kind)
            #expect(back == file && back.name.utf8.elementsEqual(name.utf8), place)
            // Composed and decomposed letters are two names, as in file systems.
            let other = known.updateValue(name, forKey: file.key + "/" + file.kind.rawValue) ?? name
            #expect(other.utf8.elementsEqual(name.utf8), place)
        }
        #expect(short > 200 && tooLong > 200, "\(short) short, \(tooLong) too long")
    }

    @Test("of two files of one object one is used and the other is named as a problem")
    func scan() {
        let scan = FolderScan(["plan.json", "plan", "sub", ".x", "b.md"], isFolder: { $0 == "sub" })
        #expect(scan.sorted.map(\.name) == ["b.md", "plan"])
        #expect(scan.problems.map(\.name) == ["plan.json", "sub"])
        let preferring = FolderScan(
            ["plan.json", "plan"], isFolder: { _ in false }, preferred: { _ in "plan.json" })
        #expect(preferring.sorted.map(\.name) == ["plan.json"])
        #expect(preferring.problems.map(\.name) == ["plan"])
    }
}
