import Glibc

/// Swift source with comments and the insides of string literals left out, so that rules about code do not trip over
/// words.
enum SwiftText {
    /// Code of every Swift file of the package by its path, read once.
    static let all = {
        var all = [String: [UInt8]]()
        for path in Repository.files("", ending: ".swift") { all[path] = stripped(Repository.bytes(path)) }
        return all
    }()

    /// Paths of Swift files below a folder, sorted.
    static func paths(_ folder: String) -> [String] {
        all.keys.filter { (path: String) in path.hasPrefix(folder + "/") }.sorted()
    }

    static func code(_ path: String) -> [UInt8] { all[path] ?? [] }

    /// The code line by line; line numbers are those of the file.
    static func lines(_ path: String) -> [String] {
        code(path).split(separator: 0x0A, omittingEmptySubsequences: false).map { (line: ArraySlice<UInt8>) in
            String(decoding: line, as: UTF8.self)
        }
    }

    private enum Place { case code, lineComment, blockComment, string, longString }

    /// Line feeds stay, so that lines keep their numbers.
    static func stripped(_ text: [UInt8]) -> [UInt8] {
        var code = [UInt8]()
        code.reserveCapacity(text.count)
        var place = Place.code
        var depth = 0
        var index = 0
        while index < text.count {
            let byte = text[index]
            let next = index + 1 < text.count ? text[index + 1] : 0
            let isTriple = byte == 0x22 && next == 0x22 && index + 2 < text.count && text[index + 2] == 0x22
            var step = 1
            if byte == 0x0A {
                code.append(byte)
                if place == .lineComment || place == .string { place = .code }
                index += 1
                continue
            }
            switch place {
            case .code:
                if isTriple {
                    (place, step) = (.longString, 3)
                } else if byte == 0x22 {
                    place = .string
                    code += [0x22, 0x22]
                } else if byte == 0x2F, next == 0x2F {
                    place = .lineComment
                } else if byte == 0x2F, next == 0x2A {
                    (place, depth, step) = (.blockComment, 1, 2)
                } else {
                    code.append(byte)
                }
            case .lineComment: break
            case .blockComment:
                if byte == 0x2A, next == 0x2F {
                    (depth, step) = (depth - 1, 2)
                    if depth == 0 { place = .code }
                } else if byte == 0x2F, next == 0x2A {
                    (depth, step) = (depth + 1, 2)
                }
            case .string:
                if byte == 0x5C { step = 2 } else if byte == 0x22 { place = .code }
            case .longString:
                if byte == 0x5C { step = 2 } else if isTriple { (place, step) = (.code, 3) }
            }
            index += step
        }
        return code
    }
}

/// Searches in bytes: fast where searching in `String` would take seconds.
enum Bytes {
    /// Offsets at which `needle` begins.
    static func places(of needle: String, in bytes: [UInt8]) -> [Int] {
        guard !bytes.isEmpty, !needle.isEmpty else { return [] }
        var found = [Int]()
        (bytes + [0]).withUnsafeBytes { (raw: UnsafeRawBufferPointer) in
            guard let start = raw.baseAddress?.assumingMemoryBound(to: CChar.self) else { return }
            var from = start
            while let hit = strstr(from, needle) {
                found.append(UnsafePointer(hit) - start)
                from = UnsafePointer(hit) + 1
            }
        }
        return found
    }

    /// Number of the line that holds an offset, from 1.
    static func line(of offset: Int, in bytes: [UInt8]) -> Int {
        1 + bytes[..<offset].reduce(0) { (count: Int, byte: UInt8) in byte == 0x0A ? count + 1 : count }
    }
}
