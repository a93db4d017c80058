import Glibc
import ThicketFuzz

/// The target of this process, named by THICKET_FUZZ_TARGET.
private let target: @Sendable ([UInt8]) -> Void = {
    let name: String = getenv("THICKET_FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let found = FuzzTargets.all.first(where: { $0.name == name }) else {
        let names: String = FuzzTargets.all.map(\.name).joined(separator: "\n")
        print(names)
        exit(name.isEmpty ? 0 : 2)
    }
    return found.run
}()

/// libFuzzer calls this for each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    target([UInt8](UnsafeBufferPointer(start: start, count: count)))
    return 0
}

/// Without a target, prints the names of all targets and ends: `Tools/Fuzz/run` reads them.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(_ count: UnsafeMutablePointer<CInt>?, _ arguments: UnsafeMutableRawPointer?) -> CInt {
    _ = target
    return 0
}
